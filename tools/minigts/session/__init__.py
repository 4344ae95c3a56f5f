"""The one door: a lab is brought up here, and a campaign run, whoever asks for it.

`bring_up` asks all that can be refused before anything is started, then has hosts, certificate and overlay. `campaign`
reads experiments, has their samples taken lab by lab or by an engine's workers, and leaves every table. Nothing here
prints or draws: who asks is told what goes on. `minigts.api` is how other people's programs come in.
"""
