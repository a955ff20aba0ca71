/** Addresses that a phone in another network has no way to: of this machine, or of a private network. */
const PRIVATE =
  /^(localhost|.*\.(localhost|local|internal)|0\.|127\.|10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|169\.254\.|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|\[(::1?|f[cd][0-9a-f]{2}:.*|fe[89ab][0-9a-f]:.*)\]$)/;

/** The address of the service that a link for wallets leads to, which PUBLIC_URL says. */
export function hostOfLink(link: string): URL | undefined {
  try {
    const { searchParams } = new URL(link);
    const inner = searchParams.get('credential_offer_uri') ?? searchParams.get('request_uri') ?? link;
    const address = new URL(inner);
    return /^https?:$/.test(address.protocol) ? address : undefined;
  } catch {
    return undefined;
  }
}

export const mayBeReached = ({ protocol, hostname }: URL): boolean => protocol === 'https:' && !PRIVATE.test(hostname);
