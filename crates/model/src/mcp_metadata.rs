//! Metadata of parts and artifacts that came from an MCP server.
//!
//! The MCP client keeps the members of a content block that a part has no field for under [`MCP_KEY`]. The MCP server restores the block
//! from them, so that a result crosses Rialto unchanged.

/// Metadata key with the members of the original MCP block.
pub const MCP_KEY: &str = "mcp";

/// Member under [`MCP_KEY`] that marks a part as the structured content of a result.
pub const STRUCTURED_CONTENT_KEY: &str = "structuredContent";
