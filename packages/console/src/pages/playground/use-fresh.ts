import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { focus } from '../../shell/keep-focus.ts';
import type { Play } from './play.ts';

/** The heading of what has just come gets the focus, once: it is read out, and the next key is for it. */
export function useFresh<Place extends HTMLElement>(play: Play, name: string): RefObject<Place | null> {
  const place = useRef<Place>(null);
  useEffect(() => {
    if (play.fresh !== name) return;
    play.fresh = '';
    focus(place.current?.querySelector('h2,h3'));
  }, [play, name]);
  return place;
}
