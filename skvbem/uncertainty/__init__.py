"""How sure a posterior is of parameters: draws by Gibbs chains, and linear response of what VB says."""
