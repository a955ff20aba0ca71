import { type DerElement, DerError } from './reader.ts';

const UTC_TIME = 0x17;
const GENERALIZED_TIME = 0x18;
const FORMS: Readonly<Record<number, RegExp>> = {
  [UTC_TIME]: /^(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})Z$/,
  [GENERALIZED_TIME]: /^(\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})Z$/,
};

/**
 * Parses a time of a certificate, in seconds of UTC (RFC 5280 sections 4.1.2.5.1 and 4.1.2.5.2).
 * @throws DerError for an invalid date, because a comparison with it would always be false.
 */
export function parseTime({ tag, content }: Pick<DerElement, 'tag' | 'content'>): Date {
  const text = content.toString('latin1');
  const [, year, month, day, hour, minute, second] = FORMS[tag]?.exec(text) ?? [];
  const full = tag === UTC_TIME ? `${text < '5' ? '20' : '19'}${year}` : year;
  const isoText = `${full}-${month}-${day}T${hour}:${minute}:${second}.000Z`;
  const time = new Date(isoText);
  // 30 February and 24 o'clock would be normalized to the next day.
  if (Number.isNaN(time.getTime()) || time.toISOString() !== isoText) throw new DerError('time');
  return time;
}
