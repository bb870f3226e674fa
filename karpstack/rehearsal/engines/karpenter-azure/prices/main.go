// Command azure writes the on-demand prices that the Karpenter controller for Azure carries, as JSON:
// region -> VM size -> dollars per hour.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"

	"github.com/Azure/karpenter-provider-azure/pkg/auth"
	"github.com/Azure/karpenter-provider-azure/pkg/providers/pricing"
)

func main() {
	// In a cloud that is not public, the provider keeps the prices that it was compiled with and asks nobody.
	offline := cloud.AzureChina
	table := map[string]map[string]float64{}
	for _, region := range pricing.Regions() {
		provider := pricing.NewProvider(context.Background(), &auth.Environment{Cloud: offline}, pricing.NewAPI(offline), region, nil)
		table[region] = map[string]float64{}
		for _, size := range provider.InstanceTypes() {
			if price, known := provider.OnDemandPrice(size); known {
				table[region][size] = price
			}
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(table); err != nil {
		log.Fatalf("writing the price table: %v", err)
	}
}
