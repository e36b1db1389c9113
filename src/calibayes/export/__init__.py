"""Fitted classifiers as SQL and ONNX, which compute their probabilities without Python.

A model is first written in a small language (`calibayes.export.expressions`), from which every export is rendered.
"""
