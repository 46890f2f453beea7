"""What is claimed of a deployment, in rooms: who may come in, the ways of orders, repeats, crashes, supervision, dead
letters, rights, logs."""
