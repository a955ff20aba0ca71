import type { Finding } from './finding.ts';

/** WCAG 2.2 success criterion 1.4.3: for text of any size. */
export const MIN_CONTRAST = 4.5;

export type Colours = { readonly background: string; readonly text: string };

/** @returns red, green and blue from 0 to 1; undefined unless it is an opaque hex colour. */
function channelsOf(colour: string): readonly [number, number, number] | undefined {
  const [, digits = ''] = /^#([0-9A-Fa-f]{3,8})$/.exec(colour) ?? [];
  const long = digits.length < 5 ? [...digits].map((digit) => digit + digit).join('') : digits;
  if (long.length !== 6 && !(long.length === 8 && /ff$/i.test(long))) return undefined;
  const channel = (offset: number) => Number.parseInt(long.slice(offset, offset + 2), 16) / 255;
  return [channel(0), channel(2), channel(4)];
}

/** WCAG 2.2, relative luminance. */
function luminanceOf(channels: readonly [number, number, number]): number {
  const [red, green, blue] = channels.map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)) as [
    number,
    number,
    number,
  ];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** The contrast ratio of WCAG 2.2, from 1 to 21. @returns undefined unless both are opaque hex colours. */
export function contrastOf(firstColour: string, secondColour: string): number | undefined {
  const [firstChannels, secondChannels] = [channelsOf(firstColour), channelsOf(secondColour)];
  if (firstChannels === undefined || secondChannels === undefined) return undefined;
  const [low = 0, high = 0] = [luminanceOf(firstChannels), luminanceOf(secondChannels)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

type ColourSettings = { readonly background?: string | undefined; readonly text?: string | undefined };

/**
 * Readable text and background colours; a background without text colour gets black or white.
 * @returns undefined for a missing or translucent background, or too little contrast.
 */
export function readableColours({ background, text }: ColourSettings): Colours | undefined {
  if (background === undefined || channelsOf(background) === undefined) return undefined;
  if (text !== undefined) {
    const contrast = contrastOf(background, text) ?? 0;
    return contrast >= MIN_CONTRAST ? { background, text } : undefined;
  }
  const isDark = (contrastOf(background, '#ffffff') ?? 0) >= MIN_CONTRAST;
  return { background, text: isDark ? '#ffffff' : '#000000' };
}

/** @param member dotted path of the text colour. */
export function findContrastProblems(member: string, { background, text }: ColourSettings): Finding[] {
  if (background === undefined || text === undefined) return [];
  const contrast = contrastOf(background, text);
  if (contrast === undefined || contrast >= MIN_CONTRAST) return [];
  return [
    {
      rule: 'WCAG 2.2 success criterion 1.4.3, Directive (EU) 2019/882',
      member,
      concerns: 'users with low vision',
      message: `the contrast of the colour with the background is ${contrast.toFixed(1)} to 1, and pages of this service use their default colours instead`,
      change: `choose colours with a contrast of ${MIN_CONTRAST} to 1 or more`,
    },
  ];
}
