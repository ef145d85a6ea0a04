//! The command as its users meet it: the binary is run, against nothing or against a fake API server on loopback.

mod apply;
mod cluster;
mod commands;
mod completion;
mod config;
mod database;
mod delete;
mod diff;
mod doctor;
mod documentation;
mod exec;
mod expose;
mod history;
mod logs;
mod names;
mod port_forward;
mod projects;
mod reference;
mod render;
mod secrets;
mod show;
mod status;
mod support;
mod validate;
mod version;
mod wait;
