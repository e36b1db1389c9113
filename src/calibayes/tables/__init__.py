"""From a table as a person has it to blocks: read -> schema -> encode -> sources."""
