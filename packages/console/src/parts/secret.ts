const SECRET = /-----BEGIN |\beyJ[\w-]{8,}|\bBearer\s|"(?:d|k)"\s*:|secret\s*[=:]|password\s*[=:]/i;
const OPAQUE = /^[\w+/=~-]{40,}$/;

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
