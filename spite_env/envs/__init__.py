"""The environments: thin, without rules of their own. Those of Gymnasium are entered into its registry here."""

import gymnasium

for _name, _settings in (("SpiteAndMalice", {}), ("SpiteAndMaliceMatch", {"match_points": 50})):
    gymnasium.register(
        f"{_name}-v0",
        entry_point="spite_env.envs.gym:SpiteEnv",
        vector_entry_point="spite_env.envs.gym:SpiteVectorEnv",
        kwargs=_settings,
    )
