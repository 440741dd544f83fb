"""Agents beyond random and greedy, by name."""

#: Where each agent is, imported only when it is asked for.
AGENTS = {
    "expert": "agents.expert:ExpertPolicy",
    "hoarder": "agents.hoarder:HoarderPolicy",
    "network": "agents.network:NetworkPolicy",
    "playout": "agents.playout:PlayoutPolicy",
    "search": "agents.search:SearchPolicy",
}
