"""The numbers of a report: durations, cost, packing, disruptions, and limits for them."""
