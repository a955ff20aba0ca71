import type { Fetch } from './core/index.ts';
import { decodeEntities } from './html.ts';
import { UsageError } from './options.ts';

export type Link = { readonly kind: 'offer' | 'request'; readonly uri: string };

const OFFER_SCHEMES = ['openid-credential-offer:', 'haip-vci:'];
const REQUEST_SCHEMES = ['openid4vp:', 'haip-vp:', 'haip:', 'mdoc-openid4vp:', 'eudi-openid4vp:'];
const IN_PAGES = /(?:openid-credential-offer|haip-vci|openid4vp|haip-vp|haip|mdoc-openid4vp|eudi-openid4vp):\/\/[^\s"'<>]+/;

/** @throws UsageError unless it is an offer, a request, or a page that contains one. */
export async function readLink(text: string, fetch: Fetch): Promise<Link> {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) throw new UsageError(`"${text.slice(0, 80)}" is not a link`);
  const link = linkOf(url, text);
  if (link !== undefined) return link;
  if (!/^https?:$/.test(url.protocol)) throw new UsageError(`links that begin with ${url.protocol} are neither offers nor requests`);
  // A link in an HTML attribute is escaped.
  const encodedLink = IN_PAGES.exec(await pageAt(url, fetch))?.[0];
  if (encodedLink === undefined) throw new UsageError(`${url.origin}${url.pathname} has no offer and no request`);
  const embeddedLink = decodeEntities(encodedLink);
  return linkOf(new URL(embeddedLink), embeddedLink) as Link;
}

function linkOf({ protocol, searchParams }: URL, uri: string): Link | undefined {
  const isOffer = searchParams.has('credential_offer') || searchParams.has('credential_offer_uri');
  if (OFFER_SCHEMES.includes(protocol) || isOffer) {
    if (isOffer) return { kind: 'offer', uri };
    throw new UsageError('the link has neither credential_offer nor credential_offer_uri');
  }
  const isRequest = searchParams.has('request_uri') || searchParams.has('request') || searchParams.has('dcql_query');
  if (!REQUEST_SCHEMES.includes(protocol) && !isRequest) return undefined;
  if (isRequest) return { kind: 'request', uri };
  throw new UsageError('the link has neither request_uri nor request');
}

async function pageAt(url: URL, fetch: Fetch): Promise<string> {
  try {
    const answer = await fetch(url, { headers: { Accept: 'text/html' } });
    return await answer.text();
  } catch (error) {
    const { cause } = error as Error;
    const reason = cause instanceof Error ? cause.message : (error as Error).message;
    throw new UsageError(`${url.origin} cannot be read: ${reason}`);
  }
}
