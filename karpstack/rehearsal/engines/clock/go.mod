module karpstack/engines/clock

go 1.26.0
