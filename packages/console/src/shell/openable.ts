import { createContext } from 'preact';

/** Names of the pages that whoever looks may open: what links to another page asks here first. */
export const Openable = createContext<readonly string[]>([]);
