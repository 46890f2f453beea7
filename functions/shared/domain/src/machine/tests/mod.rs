//! The rules of the protocol, each as tests.

mod approval;
mod callback;
mod child;
mod claim;
mod close;
mod compensation;
mod contradiction;
mod erase;
mod fallback;
mod late;
mod lines;
mod longer;
mod mapping;
mod note;
mod operator;
mod pivot;
mod poll;
mod reply;
mod retain;
mod settle;
mod skip;
mod supervision;
mod trouble;
mod wait;
