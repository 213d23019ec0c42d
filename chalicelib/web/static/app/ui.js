// Preact and htm under one roof: every module that draws imports from here. Text and attributes are escaped by Preact.
import { Component, Fragment, createContext, h, render } from "../lib/preact.js";
import {
  useCallback, useContext, useEffect, useId, useLayoutEffect, useMemo, useReducer, useRef, useState,
} from "../lib/preact-hooks.js";
import htm from "../lib/htm.js";

export const html = htm.bind(h);

export {
  Component, Fragment, createContext, render, useCallback, useContext, useEffect, useId, useLayoutEffect, useMemo, useReducer,
  useRef, useState,
};
