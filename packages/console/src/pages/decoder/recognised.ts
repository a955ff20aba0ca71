export type Recognised = {
  readonly sentence: string;
  readonly parts: readonly { readonly title: string; readonly value: unknown }[];
  readonly isPrivate?: true;
};
