"""The passes of loop optimisation, one in each file: functions from programs to programs that keep the meaning."""
