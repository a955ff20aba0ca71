const LOOKS =
  'A link of an offer looks like openid-credential-offer://?credential_offer_uri=…, one of a request like openid4vp://?client_id=…&request_uri=….';

export function kindOf(link: string): 'offer' | 'request' | undefined {
  if (!/^[a-z][a-z0-9+.-]*:\S+$/i.test(link)) return undefined;
  if (/[?&#]credential_offer(_uri)?=/.test(link)) return 'offer';
  return /[?&#](request_uri|request|client_id)=/.test(link) ? 'request' : undefined;
}

/** A sentence of what came in place of a link, and what one looks like. */
export function whatCame(text: string): string {
  return `${nameOf(text)} ${LOOKS}`;
}

function nameOf(text: string): string {
  if (text === '') return 'Paste a link first.';
  if (/-----BEGIN /.test(text)) return 'The phone cannot use this: a key or a certificate is no link.';
  if (/^[\w-]+\.[\w-]+\.[\w-]+/.test(text) && text.startsWith('ey')) return 'The phone cannot use this: a token is no link.';
  if (/^https?:/i.test(text)) return 'The phone cannot use this: an address of the web with neither an offer nor a request in it.';
  if (/^[[{]/.test(text)) return 'The phone cannot use this: JSON is no link.';
  return 'The phone cannot use this: the text is no link.';
}
