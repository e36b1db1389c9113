"""Files of arrays and plain values: the safetensors format with checksums, strict JSON, a closed list of classes, no code."""
