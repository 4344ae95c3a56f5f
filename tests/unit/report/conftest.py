from drawn_once import drawn_anew, drawn_once

__all__ = ["drawn_anew", "drawn_once"]
