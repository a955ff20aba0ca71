import { createContext } from 'preact';

export const Openable = createContext<readonly string[]>([]);
