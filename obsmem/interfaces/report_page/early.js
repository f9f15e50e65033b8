"use strict";
/* Before anything is laid out: only the first part is, until the others are asked for. */
document.documentElement.classList.add("starting");
