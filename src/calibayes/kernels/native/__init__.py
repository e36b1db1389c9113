"""The extension module with the native kernels, where it was built, and its C++ sources."""
