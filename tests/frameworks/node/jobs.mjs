// Node's clients and what is built on them, each doing a real job. `node jobs.mjs PORT NAME` runs one.
import assert from 'node:assert/strict';
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const [port, name] = [Number(process.argv[2]), process.argv[3]];

async function until(isSo, what, ms = 20000) {
  const end = Date.now() + ms;
  while (!(await isSo())) {
    assert(Date.now() < end, `never: ${what}`);
    await sleep(5);
  }
}

const range = (count) => Array.from({ length: count }, (_, index) => index);

const jobs = {
  async ioredis() {
    const { default: Redis } = await import('ioredis');
    const client = new Redis({ port });
    const pipeline = client.pipeline();
    range(1000).forEach(() => pipeline.incr('counter'));
    assert.equal((await pipeline.exec())[999][1], 1000);
    assert.deepEqual(await client.multi().set('n', 1).incr('n').exec(), [[null, 'OK'], [null, 2]]);
    client.defineCommand('both', { numberOfKeys: 1, lua: 'return {KEYS[1], ARGV[1]}' });
    assert.deepEqual(await client.both('k', 'v'), ['k', 'v']);
    const subscriber = new Redis({ port });
    const heard = [];
    subscriber.on('message', (_, text) => heard.push(text));
    await subscriber.subscribe('news');
    await client.publish('news', 'hello');
    await until(() => heard.length === 1, 'a message');
    await client.mset(...range(2000).flatMap((number) => [`key:${number}`, number]));
    let seen = 0;
    for await (const keys of client.scanStream({ match: 'key:*', count: 100 })) seen += keys.length;
    assert(seen >= 2000);
    await client.xadd('stream', '*', 'field', 'value');
    const read = await client.xread('BLOCK', 100, 'STREAMS', 'stream', '0');
    assert.equal(read[0][1][0][1][1], 'value');
    assert.equal(await client.brpop('nothing', 0.05), null);
    subscriber.disconnect();
    client.disconnect();
  },

  async 'node-redis'() {
    const { createClient } = await import('redis');
    const cache = { ttl: 0, maxEntries: 0, evictPolicy: 'LRU' };
    const client = createClient({ socket: { port }, RESP: 3, clientSideCache: cache });
    const other = createClient({ socket: { port } });
    await client.connect();
    await other.connect();
    await client.set('cached', 'old');
    assert.equal(await client.get('cached'), 'old');
    await other.set('cached', 'new');
    await until(async () => (await client.get('cached')) === 'new', 'an invalidation');
    await client.hSet('hash', { a: 1, b: 2 });
    assert.deepEqual({ ...(await client.hGetAll('hash')) }, { a: '1', b: '2' });
    await client.zAdd('scores', [{ score: 1, value: 'a' }, { score: 2.5, value: 'b' }]);
    assert.equal((await client.zRangeWithScores('scores', 0, -1))[1].score, 2.5);
    await client.xAdd('stream', '*', { field: 'value' });
    await client.xGroupCreate('stream', 'group', '0');
    assert(await client.xReadGroup('group', 'consumer', { key: 'stream', id: '>' }));
    const library = "#!lua name=one\nredis.register_function('first', function(_, args) return args[1] end)";
    await client.functionLoad(library, { REPLACE: true });
    assert.equal(await client.fCall('first', { keys: [], arguments: ['x'] }), 'x');
    const subscriber = other.duplicate();
    await subscriber.connect();
    const heard = [];
    await subscriber.subscribe('plain', (text) => heard.push(text));
    await subscriber.pSubscribe('pat*', (text) => heard.push(text));
    await subscriber.sSubscribe('shard', (text) => heard.push(text));
    await other.publish('plain', '1');
    await other.publish('pattern', '2');
    await other.sPublish('shard', '3');
    await until(() => heard.length === 3, 'three messages');
    await other.watch('cached');
    await client.set('cached', 'newer');
    await assert.rejects(other.multi().set('cached', 'lost').exec());
    await Promise.all([subscriber, other, client].map((one) => one.close()));
  },

  async bullmq() {
    const { FlowProducer, Queue, QueueEvents, Worker } = await import('bullmq');
    const connection = { port, maxRetriesPerRequest: null };
    const queue = new Queue('work', { connection });
    const events = new QueueEvents('work', { connection });
    await events.waitUntilReady();
    let completed = 0;
    const work = async (job) => {
      if (job.name === 'flaky' && job.attemptsMade < 2) throw new Error('again');
      await job.updateProgress(50);
      return job.data.number * 2;
    };
    const worker = new Worker('work', work, { connection, concurrency: 10 });
    worker.on('completed', () => (completed += 1));
    const one = await queue.add('one', { number: 21 });
    assert.equal(await one.waitUntilFinished(events, 10000), 42);
    await queue.addBulk(range(300).map((number) => ({ name: 'many', data: { number } })));
    const backoff = { type: 'exponential', delay: 20 };
    const flaky = await queue.add('flaky', { number: 1 }, { attempts: 3, backoff });
    await flaky.waitUntilFinished(events, 10000);
    const later = await queue.add('later', { number: 1 }, { delay: 200 });
    await later.waitUntilFinished(events, 10000);
    await queue.add('first', { number: 1 }, { priority: 3 });
    await until(() => completed >= 304, '304 jobs');
    await queue.upsertJobScheduler('clock', { every: 100 }, { name: 'tick', data: { number: 1 } });
    await until(() => completed >= 307, 'a schedule');
    await queue.removeJobScheduler('clock');
    const children = new Worker('parts', async (job) => job.data.number, { connection });
    const flows = new FlowProducer({ connection });
    const parts = [1, 2].map((number) => ({ name: 'part', queueName: 'parts', data: { number } }));
    const whole = { name: 'whole', queueName: 'work', data: { number: 5 }, children: parts };
    const flow = await flows.add(whole);
    await flow.job.waitUntilFinished(events, 10000);
    assert.deepEqual(Object.values(await flow.job.getChildrenValues()).sort(), [1, 2]);
    assert.equal((await queue.getJobCounts()).failed, 0);
    await Promise.all([worker, children, flows, events, queue].map((part) => part.close()));
  },

  async 'socket.io'() {
    const { Server } = await import('socket.io');
    const { createClient } = await import('redis');
    const byChannels = await import('@socket.io/redis-adapter');
    const byStreams = await import('@socket.io/redis-streams-adapter');
    const connected = async () => {
      const client = createClient({ socket: { port } });
      await client.connect();
      return client;
    };
    const servers = {
      channels: async () => byChannels.createAdapter(await connected(), await connected()),
      streams: async () => byStreams.createAdapter(await connected()),
    };
    for (const [kind, adapter] of Object.entries(servers)) {
      const [sender, receiver] = [new Server(http.createServer()), new Server(http.createServer())];
      sender.adapter(await adapter());
      receiver.adapter(await adapter());
      let heard = 0;
      receiver.on('hello', (number) => (heard = number));
      await until(async () => {
        sender.serverSideEmit('hello', 7);
        await sleep(20);
        return heard === 7;
      }, kind);
    }
  },

  async 'connect-redis'() {
    const { RedisStore } = await import('connect-redis');
    const { createClient } = await import('redis');
    const client = createClient({ socket: { port } });
    await client.connect();
    const store = new RedisStore({ client });
    await store.set('session', { cookie: {}, user: 1 });
    assert.equal((await store.get('session')).user, 1);
    await store.touch('session', { cookie: {} });
    assert.equal((await store.all()).length, 1);
    assert.equal(await store.length(), 1);
    await store.destroy('session');
    assert.equal(await store.length(), 0);
    await client.close();
  },
};

await jobs[name]();
process.exit(0);
