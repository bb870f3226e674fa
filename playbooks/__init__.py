"""The scale test: playbooks, roles, scenarios and the plugins behind them. Knows only stack outputs."""
