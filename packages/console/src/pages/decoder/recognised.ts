/** What a text is: one sentence, and what is in it. */
export type Recognised = {
  readonly sentence: string;
  readonly parts: readonly { readonly title: string; readonly value: unknown }[];
  /** Whoever has it can sign or read in the name of somebody: it is told loudly, and not shown. */
  readonly isPrivate?: true;
};
