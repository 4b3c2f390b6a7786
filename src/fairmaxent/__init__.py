"""fairmaxent: turn a biased table into a fair one by maximum entropy."""
