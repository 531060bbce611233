//! The A2A door as its clients see it: raw requests into the router, in every dialect and binding.

mod dialects;
mod extensions;
mod house;
mod pushes;
mod refusals;
mod repeats;
mod rules;
mod seed;
mod streams;
mod tasks;
