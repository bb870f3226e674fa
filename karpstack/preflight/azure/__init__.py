"""What is asked of an Azure subscription."""
