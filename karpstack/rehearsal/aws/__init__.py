"""The simulated AWS account: moto in this process, and what moto lacks or models wrongly.

`account.Account` is the way in. Each module that changes moto says which behaviour it changes and why; what is
neither in moto nor here is refused by moto itself.
"""
