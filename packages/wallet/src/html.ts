const NAMED: Readonly<Record<string, string>> = { amp: '&', quot: '"', apos: "'", lt: '<', gt: '>' };

/** Decodes HTML entities. */
export function decodeEntities(html: string): string {
  return html.replaceAll(/&(?:#(\d{1,6})|#x([\da-f]{1,5})|(amp|quot|apos|lt|gt));/gi, (_, decimal, hex, name) => {
    if (name !== undefined) return NAMED[String(name).toLowerCase()] ?? '';
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
    return code <= 0x10ffff ? String.fromCodePoint(code) : '';
  });
}
