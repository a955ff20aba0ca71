/** PEM, tokens, and keys in JSON: nobody is asked for a thing by these. */
const SECRET = /-----BEGIN |\beyJ[\w-]{8,}|\bBearer\s|"(?:d|k)"\s*:|secret\s*[=:]|password\s*[=:]/i;
/** What is as long as a code may as well be the secret of a client. */
const OPAQUE = /^[\w+/=~-]{40,}$/;

/** Whether a text is nothing to be sent only because somebody pasted it. */
export function isSecret(text: string): boolean {
  return SECRET.test(text);
}

/** The address of a call, without what stands in its parameters and may be a secret. */
export function withoutSecrets(address: string): string {
  const [path = '', query] = address.split('?', 2);
  if (query === undefined) return address;
  const parts = query.split('&').map((part) => {
    const [[name, text] = ['', '']] = new URLSearchParams(part);
    return isSecret(text) || (name === 'q' && OPAQUE.test(text)) ? `${name}=…` : part;
  });
  return `${path}?${parts.join('&')}`;
}
