-- The attribution of a simulated day, written by hand: the peer of attribution.day in `make bench`.
--
-- Reads nodes, workloads, usage and charges (Parquet, as views of these names) and leaves two
-- tables: costs and costs_daily. Money is whole units of 1e-12 (HUGEINT) until the last step, and
-- each split is exact by largest remainder, as docs/allocation.md has it.
--
-- It knows what the simulated day holds and no more: one cluster that is seen all day, nodes that are
-- there all day, lines of whole hours or of the day that name an instance, the default settings,
-- USD. It looks for no gap and keeps no evidence.

CREATE MACRO ms(t) AS epoch_ms(t);
CREATE MACRO instance(id) AS regexp_extract(lower(id), '(?:^|[/:])(i-[0-9a-z]+)$', 1);
CREATE MACRO units(money) AS replace(CAST(money AS VARCHAR), '.', '')::HUGEINT;
CREATE MACRO money(units) AS CAST(units AS DECIMAL(38, 0)) * 0.000000000001::DECIMAL(12, 12);
CREATE MACRO text(object, key) AS nullif(json_extract_string(object, '$."' || key || '"'), '');
CREATE MACRO label(object, key) AS coalesce(text(object, key), text(object, 'label_' || key));
-- Half to even, for numbers of at least 0.
CREATE MACRO ratio(n, d) AS n // d + CASE
    WHEN 2 * (n % d) > d OR (2 * (n % d) = d AND (n // d) % 2 = 1) THEN 1 ELSE 0 END;
-- A part of an amount by weight w of a sum of weights t, and the remainder that decides who gets
-- one unit more.
CREATE MACRO least_part(amount, w, t) AS
    abs(amount) // t * w + abs(amount) % t * w // t;
CREATE MACRO remainder(amount, w, t) AS (abs(amount) % t * w) % t;

-- 1. Nodes, and lives of pods from both sources: samples say when, the API moves the ends.

CREATE TEMP TABLE node AS
SELECT
    row_number() OVER (ORDER BY cluster, node)::INTEGER AS n, cluster, node,
    instance(any_value(provider_id)) AS id,
    any_value(instance_type) AS instance_type,
    max(cpu_millicores)::HUGEINT AS millicores,
    (max(memory_bytes) // 1024)::HUGEINT AS kib,
    coalesce(max(gpus) FILTER (interval_seconds IS NULL), max(gpus), 0)::HUGEINT AS gpus
FROM nodes GROUP BY cluster, node;

CREATE TEMP TABLE edges AS
WITH day AS (
    SELECT min(ms(start)) AS first, max(ms("end")) AS last FROM nodes
), chains AS (
    SELECT
        cluster, uid, min(ms(start)) AS first, max(ms("end")) AS last,
        min(ms(start)) FILTER (state = 'running') AS run,
        max(round(interval_seconds * 1000)::BIGINT) AS step, max(ms(finished_at)) AS last_seen
    FROM workloads WHERE node IS NOT NULL AND interval_seconds IS NOT NULL GROUP BY cluster, uid
), told AS (
    SELECT
        cluster, uid, min(ms(start)) AS first, max(ms("end")) AS last,
        least(greatest(coalesce(min(ms(bound_at)), min(ms(start))), day.first), day.last) AS bound,
        min(ms(start)) FILTER (state = 'running') AS started, max(ms(finished_at)) AS finish,
        least(greatest(max(ms(finished_at)), day.first), day.last) AS finished
    FROM workloads, day WHERE node IS NOT NULL AND interval_seconds IS NULL
    GROUP BY cluster, uid, day.first, day.last
), moved AS (
    SELECT
        coalesce(c.cluster, t.cluster) AS cluster, coalesce(c.uid, t.uid) AS uid,
        CASE WHEN c.uid IS NULL THEN t.first
            WHEN abs(c.first - t.bound) <= c.step THEN t.bound ELSE c.first END AS first,
        CASE WHEN c.uid IS NULL THEN t.last
            WHEN abs(c.last - t.finished) <= c.step THEN t.finished
            WHEN coalesce(coalesce(t.finish, c.last_seen) >= day.last, true)
                AND c.last >= day.last - c.step THEN day.last
            ELSE c.last END AS last,
        CASE WHEN c.uid IS NULL THEN t.started
            WHEN abs(c.run - t.started) <= c.step THEN t.started
            WHEN c.run = c.first AND abs(c.first - t.bound) <= c.step THEN t.bound
            ELSE c.run END AS run
    FROM chains c FULL JOIN told t USING (cluster, uid), day
)
SELECT cluster, uid, first, last, greatest(coalesce(run, last), first) AS run FROM moved;

-- What a pod is, by the API if it knows it; who it belongs to, by the default rules.
CREATE TEMP TABLE pod AS
WITH known AS (
    SELECT * FROM workloads WHERE node IS NOT NULL
    QUALIFY row_number() OVER (
        PARTITION BY cluster, uid ORDER BY interval_seconds IS NULL DESC, start) = 1
), named AS (
    SELECT
        cluster, uid, namespace, pod, node, root_kind, root_name, annotations, labels,
        cpu_millicores AS cpu, memory_bytes // 1024 AS memory, gpus AS cards,
        coalesce(
            label(labels, 'experiment'), label(owner_labels, 'experiment'),
            text(annotations, 'experiment'), text(environment, 'WANDB_RUN_GROUP'),
            text(environment, 'MLFLOW_EXPERIMENT_NAME'), root_name) AS experiment,
        coalesce(
            label(labels, 'model_version'), label(labels, 'model-version'),
            label(owner_labels, 'model_version'), label(owner_labels, 'model-version'),
            text(annotations, 'model-version')) AS model_version,
        coalesce(
            label(labels, 'pipeline'), label(owner_labels, 'pipeline'),
            text(annotations, 'pipeline')) AS pipeline,
        coalesce(
            label(labels, 'owner'), label(labels, 'team'), label(owner_labels, 'owner'),
            label(owner_labels, 'team'), text(annotations, 'owner'),
            text(environment, 'WANDB_USERNAME')) AS owner,
        coalesce(
            label(labels, 'project'), label(owner_labels, 'project'),
            text(annotations, 'project'), text(environment, 'WANDB_PROJECT'),
            namespace) AS project,
        coalesce(
            lower(label(labels, 'phase')), lower(text(annotations, 'phase')),
            CASE
                WHEN regexp_matches(role, '(?i)^[^:]*:.*(reward|judge)') THEN 'reward'
                WHEN regexp_matches(role, '(?i)^[^:]*:(.*[-_])?ref(erence)?([-_].*)?$')
                    THEN 'reference'
                WHEN regexp_matches(role, '(?i)^[^:]*:(rollout|generat|vllm|sglang|.*sampler)')
                    THEN 'rollout'
                WHEN regexp_matches(role, '(?i)^[^:]*:eval') THEN 'evaluation'
                WHEN regexp_matches(role, '(?i)^[^:]*:(data|preprocess|tokeniz)') THEN 'data'
                WHEN regexp_matches(role, '(?i)^[^:]*:(serve|serving|predictor)') THEN 'serve'
                WHEN regexp_matches(lower(root_name), '^eval(uat|$|[-_.0-9])') THEN 'evaluation'
                WHEN regexp_matches(role, '(?i)^(replica-type|replicated-job):'
                    '(trainer.*|node|worker.*|master|learner.*|actor)$') THEN 'update'
                WHEN regexp_matches(role, '(?i)^ray-group:(trainer|learner)') THEN 'update'
            END, 'unknown') AS phase
    FROM known
)
SELECT
    row_number() OVER (ORDER BY uid, cluster)::INTEGER AS p, named.*,
    CASE WHEN experiment IS NULL THEN 'no_rule' END AS reason
FROM named;

-- 2. Who held what in each hour: requests, and what was used above them.

CREATE TEMP TABLE life AS
WITH spans AS (
    SELECT cluster, uid, true AS waits, first AS a, run AS b FROM edges WHERE first < run
    UNION ALL
    SELECT cluster, uid, false, run, last FROM edges WHERE run < last
), hours AS (
    SELECT *, unnest(generate_series(a // 3600000, (b - 1) // 3600000)) * 3600000 AS hour
    FROM spans
)
SELECT
    row_number() OVER ()::INTEGER AS life, p, n, hours.uid, waits, hour, cpu, memory, cards,
    greatest(a, hour) AS a, least(b, hour + 3600000) AS b
FROM hours JOIN pod USING (cluster, uid) JOIN node USING (cluster, node);

CREATE TEMP TABLE used AS
WITH slot AS (
    SELECT
        uid, meter, ms(slot) AS slot, ms(slot) // 3600000 * 3600000 AS hour,
        CASE meter
            WHEN 'gpu_activity' THEN round_even(least(greatest(mean, 0), 1) * 1e9, 0)::BIGINT
            WHEN 'cpu_usage' THEN round_even(mean * 1000, 0)::BIGINT
            ELSE round_even(mean, 0)::BIGINT // 1024 END AS value,
        least(trunc(900000 * (samples / expected))::BIGINT, 900000) AS watched,
        900000 // expected AS step
    FROM usage
    WHERE meter IN ('gpu_activity', 'cpu_usage', 'memory_working_set')
        AND uid IS NOT NULL AND isfinite(mean) AND mean >= 0
), met AS (
    SELECT
        life, meter, value, step, cpu, memory, watched,
        least(b, slot + 900000) - greatest(a, slot) AS ms
    FROM slot JOIN life USING (uid, hour)
    WHERE least(b, slot + 900000) > greatest(a, slot)
)
SELECT
    life,
    sum(CASE WHEN meter = 'cpu_usage' THEN greatest(value - cpu, 0) * ms END) AS cpu,
    sum(CASE WHEN meter = 'memory_working_set' THEN greatest(value - memory, 0) * ms END) AS memory,
    sum(CASE WHEN meter = 'gpu_activity' THEN value * least(ms, watched) END) AS active,
    sum(CASE WHEN meter = 'gpu_activity' THEN least(ms, watched) END) AS watched,
    max(CASE WHEN meter = 'gpu_activity' THEN step END) AS step
FROM met GROUP BY life;

CREATE TEMP TABLE held AS
SELECT
    n, hour, p, waits, min(a) AS a, max(b) AS b,
    sum(l.cpu * (b - a) + coalesce(u.cpu, 0))::HUGEINT AS cpu,
    sum(l.memory * (b - a) + coalesce(u.memory, 0))::HUGEINT AS memory,
    sum(cards * (b - a))::HUGEINT AS cards,
    coalesce(sum(active), 0)::HUGEINT AS active,
    coalesce(sum(watched), 0)::HUGEINT AS watched,
    coalesce(sum(watched), 0) > 0 AND sum(cards * (b - a)) - sum(watched)
        <= greatest(sum(cards * (b - a)) // 10, sum(2 * cards * step)) AS sampled
FROM life l LEFT JOIN used u USING (life) GROUP BY n, hour, p, waits;

-- 3. Lines of the bill: to the hours of their nodes.

CREATE TEMP TABLE line AS
SELECT
    row_number() OVER (ORDER BY x_Source, x_LineId, x_Part)::INTEGER AS line, charges.*,
    ms(ChargePeriodStart) AS a, ms(ChargePeriodEnd) AS b, instance(ResourceId) AS id,
    units(BilledCost) AS billed, units(EffectiveCost) AS effective,
    units(ContractedCost) AS contracted, units(ListCost) AS listed
FROM charges;

CREATE TEMP TABLE part AS
WITH hours AS (
    SELECT
        line, n, a, b, billed, effective, contracted, listed,
        unnest(generate_series(a // 3600000, (b - 1) // 3600000)) * 3600000 AS hour
    FROM line JOIN node USING (id)
    WHERE id <> '' AND CommitmentDiscountStatus IS DISTINCT FROM 'Unused'
), weighed AS (
    SELECT
        *, (least(b, hour + 3600000) - greatest(a, hour))::HUGEINT AS w,
        sum(least(b, hour + 3600000) - greatest(a, hour)) OVER (PARTITION BY line) AS t
    FROM hours
), cut AS (
    SELECT
        line, n, hour, billed, effective, contracted, listed,
        least_part(billed, w, t) AS b1, least_part(effective, w, t) AS e1,
        least_part(contracted, w, t) AS c1, least_part(listed, w, t) AS l1,
        remainder(billed, w, t) AS b2, remainder(effective, w, t) AS e2,
        remainder(contracted, w, t) AS c2, remainder(listed, w, t) AS l2
    FROM weighed
), whole AS (
    SELECT
        line, n, hour,
        sign(billed) * (b1 + (row_number() OVER (PARTITION BY line ORDER BY b2 DESC, hour, n)
            <= abs(billed) - sum(b1) OVER (PARTITION BY line))::HUGEINT) AS billed,
        sign(effective) * (e1 + (row_number() OVER (PARTITION BY line ORDER BY e2 DESC, hour, n)
            <= abs(effective) - sum(e1) OVER (PARTITION BY line))::HUGEINT) AS effective,
        sign(contracted) * (c1 + (row_number() OVER (PARTITION BY line ORDER BY c2 DESC, hour, n)
            <= abs(contracted) - sum(c1) OVER (PARTITION BY line))::HUGEINT) AS contracted,
        sign(listed) * (l1 + (row_number() OVER (PARTITION BY line ORDER BY l2 DESC, hour, n)
            <= abs(listed) - sum(l1) OVER (PARTITION BY line))::HUGEINT) AS listed
    FROM cut
)
SELECT
    row_number() OVER ()::INTEGER AS part, *,
    -- Card-seconds stand on one line of a node-hour only.
    row_number() OVER (PARTITION BY n, hour ORDER BY effective DESC, line) = 1 AS main
FROM whole;

-- 4. Node-hours: what riders pay at reference rates, what is left for the cards, what is free.

CREATE TEMP TABLE node_hour AS
WITH price AS (
    SELECT n, hour, sum(effective) AS price FROM part GROUP BY n, hour
), paid AS (
    SELECT n, a AS hour, max(least(ConsumedQuantity * 3600000, 3600000))::HUGEINT AS paid
    FROM line JOIN node USING (id)
    WHERE id <> '' AND ConsumedUnit = 'Hours' AND ChargeCategory = 'Usage' GROUP BY n, a
), sums AS (
    SELECT
        n, hour, sum(cpu) AS cpu, sum(memory) AS memory, sum(cards) AS cards,
        sum(cpu) FILTER (cards = 0) AS rider_cpu, sum(memory) FILTER (cards = 0) AS rider_memory
    FROM held GROUP BY n, hour
), asked AS (
    SELECT
        n, hour, price, gpus, millicores, kib, coalesce(paid, 3600000) AS paid,
        coalesce(s.cpu, 0) AS cpu, coalesce(s.memory, 0) AS memory, coalesce(s.cards, 0) AS cards,
        ratio(coalesce(rider_cpu, 0) * 31611000000, 1000 * 3600000::HUGEINT) AS r_cpu,
        ratio(coalesce(rider_memory, 0) * 4237000000, 1048576 * 3600000::HUGEINT) AS r_memory
    FROM price JOIN node USING (n) LEFT JOIN paid USING (n, hour) LEFT JOIN sums s USING (n, hour)
), capped AS (
    SELECT
        *, least(
            CASE WHEN price < 0 THEN 0 ELSE price // 2 END,
            ratio(millicores * paid * 31611000000, 1000 * 3600000::HUGEINT)
            + ratio(kib * paid * 4237000000, 1048576 * 3600000::HUGEINT)) AS cap,
        r_cpu + r_memory AS r
    FROM asked
)
SELECT
    * EXCLUDE (r_cpu, r_memory, r, cap),
    CASE WHEN r > cap THEN cap * r_cpu // greatest(r, 1) ELSE r_cpu END AS r_cpu,
    CASE WHEN r > cap THEN cap - cap * r_cpu // greatest(r, 1) ELSE r_memory END AS r_memory
FROM capped;

CREATE TEMP TABLE pool AS
SELECT n, hour, 0 AS pool,
    CASE WHEN price > 0 THEN price - r_cpu - r_memory ELSE 1 END AS w FROM node_hour WHERE gpus > 0
UNION ALL SELECT n, hour, 1, CASE WHEN gpus = 0 THEN 9 * millicores * 1048576
    WHEN price > 0 THEN r_cpu ELSE 0 END FROM node_hour
UNION ALL SELECT n, hour, 2, CASE WHEN gpus = 0 THEN 1000 * kib
    WHEN price > 0 THEN r_memory ELSE 0 END FROM node_hour;

CREATE TEMP TABLE claim AS
WITH pods AS (
    SELECT n, hour, p, waits, a, b, h.cards = 0 AS rider, gpus, h.cards, h.cpu, h.memory
    FROM held h JOIN node_hour USING (n, hour)
), every AS (
    SELECT n, hour, 0 AS pool, 0 AS kind, p, waits, a, b, cards AS w FROM pods WHERE gpus > 0
    UNION ALL SELECT n, hour, 1, 0, p, waits, a, b, cpu FROM pods WHERE gpus = 0 OR rider
    UNION ALL SELECT n, hour, 2, 0, p, waits, a, b, memory FROM pods WHERE gpus = 0 OR rider
    UNION ALL SELECT n, hour, 0, 2, NULL, NULL, NULL, NULL, greatest(gpus * paid - cards, 0)
    FROM node_hour WHERE gpus > 0
    UNION ALL SELECT n, hour, 1, 2, NULL, NULL, NULL, NULL, greatest(millicores * paid - cpu, 0)
    FROM node_hour WHERE gpus = 0
    UNION ALL SELECT n, hour, 2, 2, NULL, NULL, NULL, NULL, greatest(kib * paid - memory, 0)
    FROM node_hour WHERE gpus = 0
)
SELECT *, sum(w) OVER (PARTITION BY n, hour, pool) AS t FROM every WHERE w > 0;

-- 5. Split: each hour of a line over the pools, each pool over its claims.

CREATE TEMP TABLE pooled AS
WITH weighed AS (
    SELECT part.*, pool, w, sum(w) OVER (PARTITION BY part) AS t
    FROM part JOIN pool USING (n, hour) WHERE w > 0
), cut AS (
    SELECT
        line, part, n, hour, main, pool, billed, effective, contracted, listed,
        least_part(billed, w, t) AS b1, least_part(effective, w, t) AS e1,
        least_part(contracted, w, t) AS c1, least_part(listed, w, t) AS l1,
        remainder(billed, w, t) AS b2, remainder(effective, w, t) AS e2,
        remainder(contracted, w, t) AS c2, remainder(listed, w, t) AS l2
    FROM weighed
)
SELECT
    line, part, n, hour, main, pool,
    sign(billed) * (b1 + (row_number() OVER (PARTITION BY part ORDER BY b2 DESC, pool)
        <= abs(billed) - sum(b1) OVER (PARTITION BY part))::HUGEINT) AS billed,
    sign(effective) * (e1 + (row_number() OVER (PARTITION BY part ORDER BY e2 DESC, pool)
        <= abs(effective) - sum(e1) OVER (PARTITION BY part))::HUGEINT) AS effective,
    sign(contracted) * (c1 + (row_number() OVER (PARTITION BY part ORDER BY c2 DESC, pool)
        <= abs(contracted) - sum(c1) OVER (PARTITION BY part))::HUGEINT) AS contracted,
    sign(listed) * (l1 + (row_number() OVER (PARTITION BY part ORDER BY l2 DESC, pool)
        <= abs(listed) - sum(l1) OVER (PARTITION BY part))::HUGEINT) AS listed
FROM cut;

CREATE TEMP TABLE share AS
WITH cut AS (
    SELECT
        line, part, n, hour, main, pool, kind, p, waits, a, b, w,
        billed, effective, contracted, listed,
        least_part(billed, w, t) AS b1, least_part(effective, w, t) AS e1,
        least_part(contracted, w, t) AS c1, least_part(listed, w, t) AS l1,
        remainder(billed, w, t) AS b2, remainder(effective, w, t) AS e2,
        remainder(contracted, w, t) AS c2, remainder(listed, w, t) AS l2
    FROM pooled JOIN claim USING (n, hour, pool)
)
SELECT
    line, n, hour, main, pool, kind, p, waits, a, b, w,
    sign(billed) * (b1 + (row_number() OVER (
        PARTITION BY part, pool ORDER BY b2 DESC, kind, p, a)
        <= abs(billed) - sum(b1) OVER (PARTITION BY part, pool))::HUGEINT) AS billed,
    sign(effective) * (e1 + (row_number() OVER (
        PARTITION BY part, pool ORDER BY e2 DESC, kind, p, a)
        <= abs(effective) - sum(e1) OVER (PARTITION BY part, pool))::HUGEINT) AS effective,
    sign(contracted) * (c1 + (row_number() OVER (
        PARTITION BY part, pool ORDER BY c2 DESC, kind, p, a)
        <= abs(contracted) - sum(c1) OVER (PARTITION BY part, pool))::HUGEINT) AS contracted,
    sign(listed) * (l1 + (row_number() OVER (
        PARTITION BY part, pool ORDER BY l2 DESC, kind, p, a)
        <= abs(listed) - sum(l1) OVER (PARTITION BY part, pool))::HUGEINT) AS listed
FROM cut;

-- 6. The product: shares of nodes with identity and activity, other lines by their own tags.

CREATE TEMP TABLE costs AS
WITH shares AS (
    SELECT
        line, cluster, node, namespace, uid, pod, instance_type, root_kind, root_name, annotations,
        CASE s.pool WHEN 0 THEN 'gpu' WHEN 1 THEN 'cpu' ELSE 'memory' END AS resource,
        CASE kind WHEN 2 THEN '__idle__' ELSE 'workload' END AS target, reason,
        CASE kind WHEN 2 THEN '__idle__' ELSE coalesce(experiment, '__unattributed__')
            END AS experiment,
        CASE kind WHEN 2 THEN '__idle__' ELSE coalesce(model_version, '__unattributed__')
            END AS model_version,
        CASE kind WHEN 2 THEN '__idle__' ELSE coalesce(pipeline, '__unattributed__')
            END AS pipeline,
        CASE kind WHEN 2 THEN '__idle__' ELSE coalesce(owner, '__unattributed__') END AS owner,
        CASE kind WHEN 2 THEN '__idle__' ELSE coalesce(project, '__unattributed__') END AS project,
        CASE WHEN kind = 2 THEN '__idle__' WHEN s.waits THEN 'wait' ELSE phase END AS phase,
        labels AS tags, coalesce(s.a, hour) AS a, coalesce(s.b, hour + 3600000) AS b,
        billed, effective, contracted, listed,
        CASE
            WHEN kind = 2 THEN 0
            WHEN s.pool > 0 THEN effective
            WHEN s.waits THEN 0
            WHEN sampled THEN sign(effective)
                * ratio(abs(effective) * active, greatest(watched, 1) * 1000000000)
        END AS working,
        CASE WHEN main AND s.pool = 0 THEN w END AS card_ms
    FROM share s JOIN node USING (n)
    LEFT JOIN (SELECT p, cluster AS of_cluster, namespace, uid, pod, root_kind, root_name,
        annotations, reason, experiment, model_version, pipeline, owner, project, phase, labels
        FROM pod) USING (p)
    LEFT JOIN held h USING (n, hour, p, waits)
), tagged AS (
    SELECT
        line, Tags,
        coalesce(text(Tags, 'experiment'), text(Tags, 'user:experiment')) AS experiment,
        coalesce(text(Tags, 'model_version'), text(Tags, 'model-version')) AS model_version,
        text(Tags, 'pipeline') AS pipeline,
        coalesce(text(Tags, 'owner'), text(Tags, 'team')) AS owner,
        text(Tags, 'project') AS project, text(Tags, 'phase') AS phase,
        a, b, billed, effective, contracted, listed, ServiceCategory
    FROM line ANTI JOIN part USING (line)
), others AS (
    SELECT *, coalesce(experiment, model_version, pipeline, owner, project, phase) IS NOT NULL AS mine
    FROM tagged
), every AS (
    SELECT * FROM shares
    UNION ALL BY NAME
    SELECT
        line, CASE WHEN mine THEN 'charge' ELSE '__unattributed__' END AS target,
        CASE WHEN experiment IS NULL THEN 'no_rule' END AS reason,
        coalesce(experiment, '__unattributed__') AS experiment,
        coalesce(model_version, '__unattributed__') AS model_version,
        coalesce(pipeline, '__unattributed__') AS pipeline,
        coalesce(owner, '__unattributed__') AS owner,
        coalesce(project, '__unattributed__') AS project,
        coalesce(phase, CASE WHEN mine THEN 'unknown' ELSE '__unattributed__' END) AS phase,
        CASE WHEN mine THEN Tags END AS tags, a, b, billed, effective, contracted, listed,
        CASE WHEN effective = 0 THEN 0
            WHEN ServiceCategory IS DISTINCT FROM 'Compute' THEN effective END AS working
    FROM others
)
SELECT
    day, x_Source, x_LineId, x_Part, x_Basis,
    CASE WHEN phase IN ('evaluation', 'reward') THEN 'evaluation' WHEN phase = 'data' THEN 'data'
        ELSE x_Dimension END AS x_Dimension,
    x_Elasticity, BillingCurrency, coalesce(ServiceProviderName, ProviderName) AS ProviderName,
    ServiceName, ServiceCategory, ChargeCategory, RegionId, SubAccountId, ResourceId,
    to_timestamp(every.a / 1000) AS ChargePeriodStart, to_timestamp(every.b / 1000) AS ChargePeriodEnd,
    cluster, node, namespace, resource, uid, pod, instance_type, root_kind, root_name, annotations,
    CASE
        WHEN ChargeCategory IN ('Tax', 'Credit') THEN lower(ChargeCategory)
        WHEN regexp_matches(lower(ServiceName), '\bsupport\b') THEN 'support'
        WHEN ChargeCategory = 'Purchase' THEN 'purchase'
        WHEN line.billed < 0 OR line.effective < 0 THEN 'discount'
        WHEN CommitmentDiscountId IS NOT NULL THEN 'commitment'
        ELSE 'usage' END AS x_LineType,
    coalesce(x_InvoiceMonth, strftime(BillingPeriodStart, '%Y-%m')) AS x_InvoiceMonth,
    BillingPeriodStart, target, reason, experiment, model_version, pipeline, owner, project, phase,
    every.tags, money(every.billed) AS BilledCost, money(every.effective) AS EffectiveCost,
    money(every.contracted) AS ContractedCost, money(every.listed) AS ListCost,
    money(working) AS ActiveCost, money(card_ms * 1000000000) AS gpu_seconds
FROM every JOIN line USING (line);

CREATE TEMP TABLE costs_daily AS
SELECT
    * EXCLUDE (x_LineId, x_Part, ResourceId, ChargePeriodStart, ChargePeriodEnd, uid, pod,
        BilledCost, EffectiveCost, ContractedCost, ListCost, ActiveCost, gpu_seconds),
    sum(BilledCost) AS BilledCost, sum(EffectiveCost) AS EffectiveCost,
    sum(ContractedCost) AS ContractedCost, sum(ListCost) AS ListCost,
    CASE WHEN count(ActiveCost) = count(*) THEN sum(ActiveCost) END AS ActiveCost,
    sum(gpu_seconds) AS gpu_seconds
FROM costs GROUP BY ALL;

-- 7. The books balance, or the day is no good.

SELECT CASE WHEN count(*) > 0 THEN error('lines that are not the sum of their shares') END
FROM line
FULL JOIN (
    SELECT
        x_Source, x_LineId, x_Part, sum(BilledCost) AS sum_billed, sum(EffectiveCost) AS sum_effective,
        sum(ContractedCost) AS sum_contracted, sum(ListCost) AS sum_listed
    FROM costs GROUP BY ALL
) USING (x_Source, x_LineId, x_Part)
WHERE BilledCost IS DISTINCT FROM sum_billed OR EffectiveCost IS DISTINCT FROM sum_effective
    OR ContractedCost IS DISTINCT FROM sum_contracted OR ListCost IS DISTINCT FROM sum_listed;
