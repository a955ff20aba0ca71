const DAY_MS = 86_400_000;
const SOON_DAYS = 14;
const COMING_DAYS = 60;

export function nearness(end: Date, now: Date): { readonly word: string; readonly tone: 'bad' | 'open' | 'good' } {
  const days = (end.getTime() - now.getTime()) / DAY_MS;
  if (days <= 0) return { word: 'over', tone: 'bad' };
  if (days < SOON_DAYS) return { word: 'soon', tone: 'bad' };
  return days < COMING_DAYS ? { word: 'coming', tone: 'open' } : { word: 'far', tone: 'good' };
}
