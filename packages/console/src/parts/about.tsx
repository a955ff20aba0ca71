/** What a control is about, for who hears its name alone: several of a page look the same. */
export function About({ about }: { readonly about: string | undefined }) {
  return about === undefined ? null : <span class="hidden"> ({about})</span>;
}
