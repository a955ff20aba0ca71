const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' });
const NEAR = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' });
const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
] as const;

/** A moment, as near as one thinks of it; the whole of it is in the title. */
export function Time({ at }: { readonly at: string | Date }) {
  const date = typeof at === 'string' ? new Date(at) : at;
  return (
    <time dateTime={date.toISOString()} title={FULL.format(date)}>
      {near(date)}
    </time>
  );
}

export function clockOf(date: Date): string {
  const isToday = date.toDateString() === new Date().toDateString();
  return (isToday ? CLOCK : FULL).format(date);
}

function near(date: Date): string {
  const seconds = (date.getTime() - Date.now()) / 1000;
  const [unit, size] = UNITS.find(([, length]) => Math.abs(seconds) >= length) ?? ['second', 1];
  return NEAR.format(Math.trunc(seconds / size), unit);
}
