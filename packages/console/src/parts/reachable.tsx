import { hostOfLink, mayBeReached } from './public-address.ts';

export function Reachable({ link }: { readonly link: string }) {
  const address = hostOfLink(link);
  if (address === undefined) return null;
  if (mayBeReached(address)) return <p class="fine">A phone with a wallet can scan this, if it reaches {address.host}.</p>;
  return (
    <p class="fine">
      A real phone cannot use this: it needs a public https address, and this leads to {address.host}. Set PUBLIC_URL; see “First hour” in
      the documentation.
    </p>
  );
}
