"""The doors to the game: each module speaks one library's language, and none of them knows a rule of the game."""
