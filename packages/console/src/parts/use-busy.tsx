import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { Problem } from './problem.tsx';

/** One thing at a time, and what went wrong with it. */
export function useBusy(): [boolean, (work: () => Promise<void>) => Promise<void>, VNode | null] {
  const [isBusy, setBusy] = useState(false);
  const [fault, setFault] = useState<unknown>();
  const run = async (work: () => Promise<void>) => {
    setBusy(true);
    setFault(undefined);
    try {
      await work();
    } catch (error) {
      setFault(error);
    } finally {
      setBusy(false);
    }
  };
  return [isBusy, run, fault === undefined ? null : <Problem fault={fault} />];
}
