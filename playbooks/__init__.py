"""The scale test: playbooks, roles, scenarios and the modules behind them. Knows only stack outputs."""
