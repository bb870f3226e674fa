// Command aws writes the on-demand prices that the Karpenter controller for AWS carries, as JSON:
// region -> instance type -> dollars per hour.
package main

import (
	"encoding/json"
	"log"
	"os"

	"github.com/aws/karpenter-provider-aws/pkg/providers/pricing"
)

func main() {
	if err := json.NewEncoder(os.Stdout).Encode(pricing.InitialOnDemandPricesAWS); err != nil {
		log.Fatalf("writing the price table: %v", err)
	}
}
