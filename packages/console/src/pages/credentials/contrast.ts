/** @returns red, green and blue from 0 to 1; undefined for what is no hex colour. Transparency is left out. */
function channels(colour: string): readonly [number, number, number] | undefined {
  const digits = /^#([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})$/i.exec(colour)?.[1];
  if (digits === undefined) return undefined;
  const size = digits.length < 6 ? 1 : 2;
  const [red = 0, green = 0, blue = 0] = [0, 1, 2].map((place) => {
    const part = digits.slice(place * size, (place + 1) * size);
    return Number.parseInt(part.length === 1 ? part + part : part, 16) / 255;
  });
  return [red, green, blue];
}

/** WCAG 2.2, relative luminance. */
function luminance(colour: readonly [number, number, number]): number {
  const [red, green, blue] = colour.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)) as [
    number,
    number,
    number,
  ];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** WCAG 2.2, contrast ratio, from 1 to 21. */
export function contrast(colour: string, otherColour: string): number | undefined {
  const [a, b] = [channels(colour), channels(otherColour)];
  if (a === undefined || b === undefined) return undefined;
  const [low = 0, high = 0] = [luminance(a), luminance(b)].sort((value, otherValue) => value - otherValue);
  return (high + 0.05) / (low + 0.05);
}

export function contrastInWords(ratio: number): string {
  const to = `${(Math.floor(ratio * 10) / 10).toFixed(1)} to 1`;
  if (ratio >= 7) return `${to}: easy to read (WCAG AAA).`;
  if (ratio >= 4.5) return `${to}: readable (WCAG AA).`;
  if (ratio >= 3) return `${to}: only large text is readable. WCAG AA wants 4.5 to 1.`;
  return `${to}: many people cannot read this. WCAG AA wants 4.5 to 1.`;
}
