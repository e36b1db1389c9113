"""Progress reports of long work."""

from calibayes.core.notices import ProgressReporter


class TestProgress:
    def test_a_bar_is_drawn_on_a_terminal(self, monkeypatch, capsys):
        monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
        reporter = ProgressReporter("Someone", True, 2)
        reporter.begin_part(1, "kernel")
        reporter.report("total step 1", 0.5)
        reporter.close()
        output = capsys.readouterr().err
        assert output.startswith("\r[Someone] ##################......  75 %  kernel, total step 1")
        assert output.endswith("\n")
