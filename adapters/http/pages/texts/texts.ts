import type { en } from './en.ts';

/** What pages say in one language: a language that lacks a text does not compile. */
export type Texts = Readonly<Record<keyof typeof en, string>>;
