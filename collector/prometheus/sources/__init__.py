"""Where samples come from: servers, exports, and what a server works out itself."""
