# frozen_string_literal: true

# What the Vagrantfile needs beside Vagrant and vagrant-libvirt: the lab's definition, starts in turn, and deadlines
# with messages that say what to do. Works with vagrant-libvirt 0.11 (Debian 12) and 0.12.

require "json"
require "open3"
require "rexml/document"

module Minigts
  PROGRAM = File.expand_path("../../minigts", __dir__)

  # Shown by Vagrant as its message alone, without a backtrace.
  class Problem < Vagrant::Errors::VagrantError
    def initialize(message)
      @said = message
      super()
    end

    def error_message
      @said
    end
  end

  def self.defined_by_caller?
    ENV.key?("MINIGTS_DEFINITION")
  end

  # The lab that the caller has defined already (minigts up), or that of a topology file.
  def self.definition(topology)
    return JSON.parse(File.read(ENV["MINIGTS_DEFINITION"])) if defined_by_caller?

    build = (ARGV & %w[up reload]).empty? ? [] : ["--build"]
    said, problems, ended = Open3.capture3(PROGRAM, "libvirt", "definition", *build, topology)
    raise Problem, problems.strip unless ended.success?

    JSON.parse(said)
  end

  # Machines boot so many at a time: emulated ones that share a processor only run into each other's limits.
  class InTurn
    @lock = Mutex.new

    class << self
      def turns(count)
        @lock.synchronize { @turns ||= SizedQueue.new(count).tap { |queue| count.times { queue << :turn } } }
      end

      attr_accessor :at_once
    end

    def initialize(app, _env)
      @app = app
      @turns = self.class.turns(self.class.at_once || 1)
    end

    # The rest of the chain, which ends when the machine answers over SSH, or has failed to.
    def call(env)
      turn = @turns.pop
      @app.call(env)
    ensure
      @turns << turn if turn
    end
  end

  # QEMU translates a guest's code into a cache of a gibibyte for each machine, all of which it touches, unless it is told
  # otherwise; vagrant-libvirt has no word for that. libvirt.org/formatdomain.html#hypervisor-features
  class TranslationCache
    class << self
      attr_accessor :mib
    end

    def initialize(app, _env)
      @app = app
    end

    def call(env)
      limit(env[:machine]) if self.class.mib
      @app.call(env)
    end

    private

    def limit(machine)
      client = machine.provider.driver.connection.client
      domain = REXML::Document.new(client.lookup_domain_by_uuid(machine.id).xml_desc(1))
      features = domain.elements["/domain/features"]
      return if features.elements["tcg"]

      features.add_element("tcg").add_element("tb-cache", "unit" => "MiB").text = self.class.mib
      client.define_domain_xml(domain.to_s)
    end
  end

  # vagrant-libvirt asks three hundred times, for ten minutes, and then shows a backtrace.
  class Deadline
    def initialize(app, _env)
      @app = app
    end

    def call(env)
      machine = env[:machine]
      limit = machine.config.vm.boot_timeout
      deadline = now + limit
      until env[:interrupted] || address(machine)
        raise Problem, explanation(machine, limit) if now > deadline

        sleep 0.5
      end
      @app.call(env)
    end

    private

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    def address(machine)
      machine.provider.driver.get_ipaddress
    rescue Fog::Errors::TimeoutError
      nil
    end

    def explanation(machine, limit)
      console = machine.provider_config.serials.first[:source][:path]
      "#{machine.name} got no address within #{limit} s. What it says is in #{console}: if that is nothing, see " \
        "`minigts doctor`; if it has booted, the network #{machine.provider_config.management_network_name} gives no " \
        "addresses: see `virsh net-list --all`, and that no firewall stops DHCP on its bridge."
    end
  end

  # Vagrant runs these around the steps of vagrant-libvirt; without that plugin there is nothing to run around.
  class Plugin < Vagrant.plugin("2")
    name "minigts"

    if defined?(VagrantPlugins::ProviderLibvirt::Action)
      steps = VagrantPlugins::ProviderLibvirt::Action
      action_hook("minigts-turns", steps::StartDomain) { |hook| hook.before(steps::StartDomain, InTurn) }
      action_hook("minigts-cache", steps::StartDomain) { |hook| hook.before(steps::StartDomain, TranslationCache) }
      action_hook("minigts-deadline", steps::WaitTillUp) { |hook| hook.before(steps::WaitTillUp, Deadline) }
    end
  end
end
