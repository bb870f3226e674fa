"""Virtual machines and scale sets: sizes, prices, images, quotas, and what a machine's custom data says."""

MACHINE_TYPE = "Microsoft.Compute/virtualMachines"
