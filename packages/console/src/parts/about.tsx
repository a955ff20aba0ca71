export function About({ about }: { readonly about: string | undefined }) {
  return about === undefined ? null : <span class="hidden"> ({about})</span>;
}
